"""Runs all benchmarks, or those named: ``python -m benchmarks [NAME...]``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

NAMES = [
    "start_against_construct",
    "message_set_against_kafka_python",
    "message_set_against_construct",
    "fetch_response_against_kafka_python",
    "trace_against_reference",
    "produce_request_against_kafka_python",
    "capture_to_frames",
    "road_against_tshark",
    "search_for_frames",
    "hostile_input_over_size",
    "crc_against_libraries",
    "columns_against_peers",
    "compressed_sets_against_aiokafka",
    "jmq4_columns_against_rows",
    "pulsar_columns_against_protobuf",
    "spark_functions_against_python_udf",
    "spark_against_serial",
    "jobs_against_serial",
    "spark_driver",
    "columns_of_a_table",
    "killed_runs",
    "scale",
    "model_against_runs",
]


def main(names: list[str]) -> None:
    """Runs each benchmark and prints its figures."""
    for name in names:
        if not Path(__file__).with_name(f"{name}.py").is_file():
            sys.exit(f"benchmarks: no benchmark {name}; choose from {', '.join(NAMES)}")
    for name in names or NAMES:
        question, rows = importlib.import_module(f"benchmarks.{name}").run()
        print(f"\n{question}")
        for label, figure in rows:
            print(f"  {label:<58} {figure}")


main(sys.argv[1:])

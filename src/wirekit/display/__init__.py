"""Decoded values for readers: trees and hexdumps in a terminal, in notebooks."""

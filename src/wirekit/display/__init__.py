"""Displays decoded values as trees and hexdumps, in a terminal and in notebooks."""

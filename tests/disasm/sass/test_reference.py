"""The pages of the instruction set say what the tables say, and their examples are instructions."""

from __future__ import annotations

"""Writes committed data: tables, signatures, goldens, fixtures."""

"""Rules of conversions: between floats, and between floats and integers."""

"""Host code of the blocks that waves have entered."""

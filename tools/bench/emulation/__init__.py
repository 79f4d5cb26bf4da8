"""How fast and how exact the emulator is."""

"""Exchange with other tools: data that goes out, data that comes in."""

"""Data and models that go out to other tools, and come in from them."""

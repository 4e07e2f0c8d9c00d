"""The tasks for each system."""

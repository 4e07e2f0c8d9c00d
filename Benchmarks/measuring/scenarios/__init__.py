"""What is asked of each system."""

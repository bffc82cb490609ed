"""What happens while a system is recorded: events, and the progress, stream and details that are made of them."""

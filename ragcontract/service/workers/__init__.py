"""Runs that the service makes itself: the queue, the schedule that fills it, and the workers that empty it."""

"""Forms: questions, answers, defaults, and what would be sent."""

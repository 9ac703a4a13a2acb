"""One writer, many subscribers: deliveries per second and their latency, beside three peers."""

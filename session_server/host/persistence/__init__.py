"""What a host does with its log.

log_writer       appends batches, and reports their outcomes in the order of the log
log_status       whether the log can be written to
replay           reads channels: the stored snapshot, and the entries after it
loaded_sessions  which sessions are in memory
maintenance      takes snapshots, trims what they cover, gives memory back
"""

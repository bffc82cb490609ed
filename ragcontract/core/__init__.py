"""What everything else is made of: records, protocols, errors, ids, numbers, text."""

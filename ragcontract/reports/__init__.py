"""Reports: a check's outcome as text for a place. Pure; nothing here touches a file."""

"""Services over HTTP as targets: calls made of templates, and answers read with JMESPath."""

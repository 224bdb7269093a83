"""Images, videos and their labels as sources of samples; class lists and maps between them."""

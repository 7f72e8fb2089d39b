"""The operators' stories, walked through in a real browser, against a real `chokaq deck`."""

"""One file a screen; all of them are pages over one `Session`."""

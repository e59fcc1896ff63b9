"""Routes over HTTP: the application, its batching and its worker processes, and the page at `/`."""

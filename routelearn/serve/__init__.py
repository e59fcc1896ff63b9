"""Routes over HTTP: the application, its batching and its service workers, and the page at `/`."""

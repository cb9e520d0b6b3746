//! A real nginx before a service, which asks the gateway about each request.

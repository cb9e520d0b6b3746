// The session before one.
package alpheus.tick;

/**
 * The session before one, as a device remembers it. A service that knows an older last border knows that
 * frames are missing. It proves nothing: a device that was restored states what it remembers.
 *
 * @param session its number
 * @param last its last border
 */
public record Previous(long session, long last) {}

// What a device states of a part of a session.
package alpheus.tick;

/**
 * What a device states of the time {@code (from, to]} in a session.
 *
 * @param kind the kind of frame
 * @param session the session
 * @param from where the frame's time starts: the last border before, or {@code to} for an opening
 * @param to where it ends
 * @param count number of events since the last anchor
 * @param root the root of the sum since the last anchor
 */
public record Statement(ClaimKind kind, long session, long from, long to, long count, Root root) {}

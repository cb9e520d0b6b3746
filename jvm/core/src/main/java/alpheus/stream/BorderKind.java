// Which of a session's borders one is.
package alpheus.stream;

/** What a border's MAC says that it is. The order is the number in the MAC. */
public enum BorderKind {
    /** The first of a session; it has no ciphertext. */
    OPENING,
    /** One within a session. */
    INTERIOR,
    /** The last of a session that ends in order. */
    CLOSING
}

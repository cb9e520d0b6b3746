// The kinds of a session's borders.
package alpheus.stream;

/** The kind of a border, as its MAC covers it. The ordinal is the number in the MAC. */
public enum BorderKind {
    /** The first of a session; it has no ciphertext. */
    OPENING,
    /** One within a session. */
    INTERIOR,
    /** The last of a session that ends in order. */
    CLOSING
}

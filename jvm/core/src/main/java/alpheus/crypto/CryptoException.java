// A key, signature or sealed secret that cannot be used.
package alpheus.crypto;

import alpheus.AlpheusException;

/** A key, signature or sealed secret that cannot be used. The error contains none of it. */
public final class CryptoException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** What is wrong. */
    public enum Fault {
        /** Nobody or everybody could open what is sealed for this key. */
        SEALING_KEY("the recipient's public key is invalid or of small order; seal nothing for that party"),
        /** It is damaged, or sealed for another key, label or context. */
        DOES_NOT_OPEN("the sealed secret does not open: it is damaged, or sealed for another key or use"),
        /** Nobody or everybody could sign under this key. */
        INVALID_KEY("the public key is not a point of large order on the curve"),
        /** The signature was not made by this key over this label and these bytes. */
        MISMATCH("the signature was not made by this key over this message");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    CryptoException(Fault fault) {
        super(fault.words);
        this.fault = fault;
    }

    /**
     * What is wrong.
     *
     * @return the fault
     */
    public Fault fault() {
        return fault;
    }
}

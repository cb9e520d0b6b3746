// A certificate that cannot be used.
package alpheus.identity;

import alpheus.AlpheusException;

/** A certificate that cannot be used. Certificates are public; the error names what is wrong and where. */
public final class CertificateException extends AlpheusException {
    private static final long serialVersionUID = 1L;

    /** What is wrong. */
    public enum Fault {
        /** The text is not a certificate. */
        NOT_A_CERTIFICATE("it is not a certificate; use the text that `alpheus ca` wrote"),
        /** The text is not a deployment's file. */
        NOT_A_DEPLOYMENT("it is not a deployment's file; use the `deployment.json` of the deployment"),
        /** The authority did not sign it. */
        UNSIGNED("the deployment's authority did not sign it; use a certificate of the same deployment"),
        /** It is of another role. */
        ROLE("it certifies a party of role `%s`, and one of role `%s` is needed"),
        /** Its keys are not usable. */
        KEYS("its keys are not usable, or not those of its role; ask the authority for another certificate"),
        /** The deployment names no ingest key. */
        NO_INGEST("it names no ingest key, but a schema without `frames: events` needs one; create the deployment with "
                + "`alpheus ca init` of this version"),
        /** The seed is of another certificate. */
        OTHER_SEED("the key is not that of the certificate; use the two files that were made together"),
        /** The text is not a seed. */
        NOT_A_SEED("it is not a seed: 64 hexadecimal digits");

        private final String words;

        Fault(String words) {
            this.words = words;
        }
    }

    private final Fault fault;

    CertificateException(Fault fault, Object... details) {
        super(String.format(fault.words, details));
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

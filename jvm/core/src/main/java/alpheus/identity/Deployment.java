// The deployment that a party belongs to.
package alpheus.identity;

import alpheus.crypto.CryptoException;
import alpheus.crypto.VerifyingKey;
import alpheus.document.DocumentException;
import alpheus.document.Node;
import alpheus.identity.CertificateException.Fault;
import java.util.HexFormat;

/** The deployment that a party belongs to: `deployment.json`, the same file for all. */
public final class Deployment {
    private static final long VERSION = 1;

    private Deployment() {}

    /**
     * Reads the key of its authority.
     *
     * @param text the file
     * @return the key
     * @throws CertificateException if it is not such a file
     */
    public static VerifyingKey authority(String text) throws CertificateException {
        try {
            Node file = Node.fromJson(text);
            Node version = file.map().get("version");
            Node authority = file.map().get("authority");
            if (version == null || authority == null) {
                throw new CertificateException(Fault.NOT_A_DEPLOYMENT);
            }
            version.integer(VERSION, VERSION);
            return new VerifyingKey(HexFormat.of().parseHex(authority.text()));
        } catch (DocumentException | CryptoException | IllegalArgumentException refused) {
            throw new CertificateException(Fault.NOT_A_DEPLOYMENT);
        }
    }
}

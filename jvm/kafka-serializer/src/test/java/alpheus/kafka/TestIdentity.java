// The authority, a device and an ingest key of a deployment for tests, with their files.
package alpheus.kafka;

import alpheus.crypto.SealingKey;
import alpheus.crypto.SecretBytes;
import alpheus.crypto.SigningKey;
import alpheus.crypto.VerifyingKey;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.interfaces.EdECPrivateKey;
import java.security.interfaces.EdECPublicKey;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/** The authority, a device and an ingest key of a deployment, with their files. */
final class TestIdentity {
    private static final HexFormat HEX = HexFormat.of();
    private static final List<String> FILES = List.of(
            "alpheus.deployment.file", "alpheus.device.seed.file", "alpheus.device.certificate.file",
            "alpheus.ingest.certificate.file");
    private static final int DEVICE = 4;
    private static final int INGEST = 5;
    private static final long FOREVER = 1L << 52;

    private final KeyPair authority = pair();
    private final KeyPair device = pair();
    private final byte[] ingestSeed = HEX.parseHex("17".repeat(32));

    private static KeyPair pair() {
        try {
            return KeyPairGenerator.getInstance("Ed25519").generateKeyPair();
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException(missing);
        }
    }

    VerifyingKey authority() throws Exception {
        return new VerifyingKey(publicBytes(authority));
    }

    VerifyingKey device() throws Exception {
        return new VerifyingKey(publicBytes(device));
    }

    SealingKey ingest() {
        return SealingKey.fromSeed(SecretBytes.takeOver(ingestSeed.clone()));
    }

    private static byte[] publicBytes(KeyPair pair) {
        EdECPublicKey key = (EdECPublicKey) pair.getPublic();
        byte[] bytes = new byte[32];
        byte[] y = key.getPoint().getY().toByteArray();
        for (int i = 0; i < y.length && i < bytes.length; i++) {
            bytes[i] = y[y.length - 1 - i];
        }
        bytes[31] |= (byte) (key.getPoint().isXOdd() ? 0x80 : 0);
        return bytes;
    }

    private static byte[] seed(KeyPair pair) {
        return ((EdECPrivateKey) pair.getPrivate()).getBytes().orElseThrow();
    }

    /** Writes the files, and names them in settings. */
    void write(Path folder, Map<String, Object> settings) throws Exception {
        file(folder, settings, FILES.get(0),
                "{\"version\": 1, \"authority\": \"" + HEX.formatHex(publicBytes(authority)) + "\", \"service\": \"00\"}");
        file(folder, settings, FILES.get(1), HEX.formatHex(seed(device)) + "\n");
        file(folder, settings, FILES.get(2), certificate(DEVICE, publicBytes(device), null, FOREVER));
        file(folder, settings, FILES.get(3),
                certificate(INGEST, publicBytes(device), ingest().publicHalf(), FOREVER));
    }

    /** Names the files of another process in settings. */
    static void named(Path folder, Map<String, Object> settings) {
        settings.replaceAll((name, old) -> FILES.contains(name) ? folder.resolve(name).toString() : old);
    }

    private static void file(Path folder, Map<String, Object> settings, String setting, String text) throws Exception {
        settings.put(setting, Files.writeString(folder.resolve(setting), text).toString());
    }

    /** A device's certificate that was valid until a time. */
    String deviceUntil(long until) {
        return certificate(DEVICE, publicBytes(device), null, until);
    }

    private String certificate(int role, byte[] verifying, byte[] sealing, long until) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        content.write(role);
        content.write(4);
        content.writeBytes("name".getBytes(StandardCharsets.UTF_8));
        content.writeBytes(verifying);
        content.writeBytes(new byte[32]);
        content.write(sealing == null ? 0 : 1);
        content.writeBytes(sealing == null ? new byte[0] : sealing);
        content.writeBytes(new byte[16]);
        content.write(0);
        number(content, 0);
        number(content, until);
        ByteArrayOutputStream signed = new ByteArrayOutputStream();
        number(signed, content.size());
        signed.writeBytes(content.toByteArray());
        SigningKey key = new SigningKey(SecretBytes.takeOver(seed(authority)));
        signed.writeBytes(key.sign("alpheus/certificate/v2", content.toByteArray()));
        return HEX.formatHex(signed.toByteArray()) + "\n";
    }

    private static void number(ByteArrayOutputStream out, long value) {
        long left = value;
        while (left > 0x7f) {
            out.write((int) (left & 0x7f) | 0x80);
            left >>>= 7;
        }
        out.write((int) left);
    }
}

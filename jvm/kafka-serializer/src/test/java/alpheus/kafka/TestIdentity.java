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
import java.util.Map;

/** The authority, a device and an ingest key of a deployment, with their files. */
final class TestIdentity {
    private static final HexFormat HEX = HexFormat.of();
    private static final int DEVICE = 4;
    private static final int INGEST = 5;

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

    /** Writes the files of an identity folder, as `alpheus ca issue` does, and names it in settings. */
    void write(Path folder, Map<String, Object> settings) throws Exception {
        String ingest = certificate(INGEST, publicBytes(device), ingest().publicHalf());
        Files.writeString(folder.resolve("deployment.json"), "{\"version\": 1, \"authority\": \""
                + HEX.formatHex(publicBytes(authority)) + "\", \"service\": \"00\", \"ingest\": [\"" + ingest + "\"]}");
        Files.writeString(folder.resolve("device.seed"), HEX.formatHex(seed(device)) + "\n");
        Files.writeString(folder.resolve("device.txt"), certificate(DEVICE, publicBytes(device), null) + "\n");
        Files.writeString(folder.resolve("ingest.txt"), ingest);
        settings.put("alpheus.identity.folder", folder.toString());
    }

    private String certificate(int role, byte[] verifying, byte[] sealing) {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        content.writeBytes(new byte[16]);
        content.write(role);
        content.write(4);
        content.writeBytes("name".getBytes(StandardCharsets.UTF_8));
        content.writeBytes(verifying);
        content.write(0);
        content.write(sealing == null ? 0 : 1);
        content.writeBytes(sealing == null ? new byte[0] : sealing);
        content.write(0);
        ByteArrayOutputStream signed = new ByteArrayOutputStream();
        number(signed, content.size());
        signed.writeBytes(content.toByteArray());
        SigningKey key = new SigningKey(SecretBytes.takeOver(seed(authority)));
        signed.writeBytes(key.sign("alpheus/certificate/v2", content.toByteArray()));
        return HEX.formatHex(signed.toByteArray());
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

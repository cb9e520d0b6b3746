// Known answers of derivation, MACs, hashes and key streams.
package alpheus.crypto;

import static alpheus.Vectors.bytes;
import static alpheus.Vectors.cases;
import static alpheus.Vectors.frames;
import static alpheus.Vectors.number;
import static alpheus.Vectors.text;
import static alpheus.Vectors.word;
import static alpheus.Vectors.words;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import alpheus.document.Node;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

class CryptoVectorsTest {
    private static byte[][] parts(Node each) {
        return frames(each, "parts").toArray(byte[][]::new);
    }

    @Test
    void labelledHashes() {
        for (Node each : cases("crypto/v1/labelled_hash.json")) {
            assertArrayEquals(bytes(each, "digest"), LabelledHash.of(text(each, "label"), parts(each)));
        }
    }

    @Test
    void derivedKeys() {
        for (Node each : cases("crypto/v1/derive.json")) {
            byte[] expected = bytes(each, "key");
            SecretBytes secret = SecretBytes.takeOver(bytes(each, "secret"));
            SecretBytes key = Hkdf.derive(secret, expected.length, text(each, "label"), parts(each));
            assertArrayEquals(expected, key.expose());
        }
    }

    @Test
    void tags() {
        for (Node each : cases("crypto/v1/mac.json")) {
            assertTrue(verifies(each));
        }
        for (String kind : new String[] {"boundary", "key", "label", "tag"}) {
            for (Node each : cases("crypto/v1/mac_bad_" + kind + ".json")) {
                assertFalse(verifies(each), kind);
            }
        }
    }

    private static boolean verifies(Node each) {
        TagKey key = new TagKey(SecretBytes.takeOver(bytes(each, "key")));
        return key.verifies(bytes(each, "tag"), text(each, "label"), parts(each));
    }

    @Test
    void linkHashes() {
        for (Node each : cases("crypto/v1/link.json")) {
            assertEquals(word(each, "h"), LinkHash.of(word(each, "session"), number(each, "t")));
        }
    }

    @Test
    void keyStreams() {
        for (Node each : cases("crypto/v1/keystream.json")) {
            long[] expected = words(each, "words");
            byte[] out = new byte[8 * expected.length];
            ByteBuffer first = ByteBuffer.wrap(bytes(each, "first"));
            try (KeyStream stream = new KeyStream(SecretBytes.takeOver(bytes(each, "key")))) {
                stream.fill(first.getLong(), first.getLong(), out, out.length);
            }
            long[] found = new long[expected.length];
            ByteBuffer.wrap(out).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(found);
            assertArrayEquals(expected, found);
        }
    }

    @Test
    void aWipedSecretCannotBeUsed() {
        byte[] bytes = {1, 2, 3};
        SecretBytes secret = SecretBytes.takeOver(bytes);
        SecretBytes other = secret.duplicate();
        secret.close();
        assertArrayEquals(new byte[3], bytes);
        assertThrows(IllegalStateException.class, secret::expose);
        assertThrows(IllegalStateException.class, secret::duplicate);
        assertArrayEquals(new byte[] {1, 2, 3}, other.expose());
    }

    @Test
    void aSecretIsNeitherPrintedNorSerialized() throws IOException {
        SecretBytes secret = SecretBytes.takeOver(new byte[] {0x41, 0x41, 0x41, 0x41});
        assertFalse(secret.toString().contains("A"), "names no byte as text");
        assertFalse(secret.toString().matches(".*(41|65).*(41|65).*"), "nor as a number");
        try (ObjectOutputStream out = new ObjectOutputStream(new ByteArrayOutputStream());
                WipedKey key = new WipedKey("AES", secret)) {
            assertThrows(IOException.class, () -> out.writeObject(key));
        }
    }
}

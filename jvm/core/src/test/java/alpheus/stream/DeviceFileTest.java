// A device's file is the one that `alpheus owner add` writes, and errors never contain its secret.
package alpheus.stream;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import alpheus.stream.DeviceFileException.Fault;
import org.junit.jupiter.api.Test;

class DeviceFileTest {
    private static final String SCHEMA = "ab".repeat(32);
    private static final String SECRET = "5ec2e7".repeat(10) + "5ec2";
    private static final String GOOD = "{\n  \"version\": 1,\n  \"stream\": \"" + "01".repeat(16)
            + "\",\n  \"schema\": \"" + SCHEMA + "\",\n  \"secret\": \"" + SECRET + "\"\n}";

    private static DeviceFile read(String text) throws DeviceFileException {
        return DeviceFile.read(text.toCharArray(), SchemaId.parse(SCHEMA));
    }

    @Test
    void aFileIsParsedAndItsTextOverwritten() throws DeviceFileException {
        char[] text = GOOD.toCharArray();
        try (DeviceFile file = DeviceFile.read(text, SchemaId.parse(SCHEMA));
                MasterSecret master = file.master()) {
            assertEquals("01".repeat(16), file.stream().toString());
            long[] found = new long[2];
            try (StreamKeys keys = new StreamKeys(master, file.stream(), SchemaId.parse(SCHEMA), 2)) {
                keys.keyVector(1, 2, found);
            }
            assertFalse(found[0] == 0 && found[1] == 0);
        }
        assertArrayEquals(new char[text.length], text);
    }

    @Test
    void invalidFilesAreRejectedWithASpecificError() {
        assertRefused(Fault.NOT_A_DEVICE_FILE, "");
        assertRefused(Fault.NOT_A_DEVICE_FILE, "[]");
        assertRefused(Fault.NOT_A_DEVICE_FILE, "{}");
        assertRefused(Fault.NOT_A_DEVICE_FILE, GOOD + "x");
        assertRefused(Fault.NOT_A_DEVICE_FILE, GOOD.replace("\"stream\"", "\"streams\""));
        assertRefused(Fault.NOT_A_DEVICE_FILE, GOOD.replace("0101", "01"));
        assertRefused(Fault.NOT_A_DEVICE_FILE, GOOD.replace("\"version\": 1,", "\"version\": 1, \"version\": 1,"));
        assertRefused(Fault.NOT_A_DEVICE_FILE, GOOD.replace("\"" + SECRET, SECRET));
        assertRefused(Fault.OTHER_FORMAT, GOOD.replace("\"version\": 1", "\"version\": 2"));
        assertRefused(Fault.OTHER_SCHEMA, GOOD.replace(SCHEMA, "cd".repeat(32)));
        assertRefused(Fault.BAD_SECRET, GOOD.replace(SECRET, SECRET.substring(2)));
        assertRefused(Fault.BAD_SECRET, GOOD.replace("5ec2e75", "zzzzzzz"));
    }

    private static void assertRefused(Fault fault, String text) {
        DeviceFileException refused = assertThrows(DeviceFileException.class, () -> read(text));
        assertEquals(fault, refused.fault());
        assertNull(refused.getCause(), "a reader's error may quote the secret");
        assertFalse(refused.getMessage().contains("5ec2"), refused.getMessage());
    }
}

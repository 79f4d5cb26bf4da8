import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertTrue;

import java.io.InputStream;
import java.net.URL;
import org.junit.Test;

public class SlowTest {
    @Test
    public void aFileComesInTimeOverTheLink() throws Exception {
        String link = System.getenv("AIRLOOM_LINK");
        assertNotNull("no link here: airloom emulate wpt/3g -- gradle --no-daemon test", link);
        long start = System.nanoTime();
        // The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
        int octets = 0;
        try (InputStream body = new URL("http://10.77.0.1/20kB").openStream()) {
            byte[] buffer = new byte[8192];
            for (int read; (read = body.read(buffer)) > 0; ) octets += read;
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        assertEquals(20_000, octets);
        System.out.printf("%.2f s over %s, seed %s%n", seconds, link, System.getenv("AIRLOOM_SEED"));
        // Two round trips of 300 ms, and 20 kB at 1.6 Mbit/s.
        assertTrue("it took " + seconds + " s", seconds >= 0.6 && seconds <= 5);
    }
}

package cafetiere.spark;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * How a task proves to the driver that it belongs to the run: the driver sends a random challenge,
 * the answer is a keyed hash of it. The secret itself is never sent.
 */
final class Handshake {
  private static final int CHALLENGE_BYTES = 32;

  private Handshake() {}

  static String challenge() {
    byte[] bytes = new byte[CHALLENGE_BYTES];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  static String answer(String secret, String challenge) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), "HmacSHA256"));
      byte[] text = ("cafetiere-driver " + challenge).getBytes(StandardCharsets.UTF_8);
      return HexFormat.of().formatHex(mac.doFinal(text));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has HmacSHA256", e);
    }
  }

  static boolean accepts(String secret, String challenge, String answer) {
    byte[] expected = answer(secret, challenge).getBytes(StandardCharsets.UTF_8);
    return MessageDigest.isEqual(expected, answer.getBytes(StandardCharsets.UTF_8));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Base64;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Encrypts lines of text with AES-256-GCM and a key for each direction. A line's nonce is its
 * number, so that lines can be neither changed nor left out, repeated or put in another order.
 */
final class LineCipher {
  private static final int TAG_BITS = 128;
  private static final int NONCE_BYTES = 12;

  private final Direction out;
  private final Direction in;

  /** The keys, of 32 bytes, for what is written and for what is read. */
  LineCipher(byte[] out, byte[] in) {
    this.out = new Direction(out);
    this.in = new Direction(in);
  }

  /** A line of ASCII that says {@code line} to the other end. */
  String seal(String line) {
    byte[] plain = line.getBytes(StandardCharsets.UTF_8);
    try {
      return Base64.getEncoder().encodeToString(out.next(Cipher.ENCRYPT_MODE, plain));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("every Java platform has AES-GCM", e);
    }
  }

  /** What the other end said. */
  String open(String sealed) throws IOException {
    try {
      byte[] plain = in.next(Cipher.DECRYPT_MODE, Base64.getDecoder().decode(sealed));
      return new String(plain, StandardCharsets.UTF_8);
    } catch (IllegalArgumentException | GeneralSecurityException e) {
      throw new IOException("a line is not what the other end wrote: it was changed on the way", e);
    }
  }

  private static final class Direction {
    private final SecretKeySpec key;
    private long lines;

    Direction(byte[] key) {
      this.key = new SecretKeySpec(key, "AES");
    }

    byte[] next(int mode, byte[] text) throws GeneralSecurityException {
      byte[] nonce = ByteBuffer.allocate(NONCE_BYTES).putLong(lines++).array();
      Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
      return cipher.doFinal(text);
    }
  }
}

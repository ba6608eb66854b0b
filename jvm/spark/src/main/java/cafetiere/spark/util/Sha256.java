// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** SHA-256, as hexadecimal digits. */
public final class Sha256 {
  private Sha256() {}

  /** The hash of bytes. */
  public static String of(byte[] bytes) {
    MessageDigest digest = digest();
    digest.update(bytes);
    return of(digest);
  }

  /** What takes bytes as they come, for {@link #of(MessageDigest)}. */
  public static MessageDigest digest() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every Java platform has SHA-256", e);
    }
  }

  /** The hash of all that a digest has taken; it begins anew. */
  public static String of(MessageDigest digest) {
    return HexFormat.of().formatHex(digest.digest());
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.line;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.MessageDigest;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.spec.X509EncodedKeySpec;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.KeyAgreement;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * How a task proves to the driver that it belongs to the run, and how the two get the keys of their
 * connection: the driver sends a fresh X25519 key, the task answers with its own and with a keyed
 * hash of both. The keys for the lines come from HKDF-SHA256 (RFC 5869) of what the X25519 keys
 * agree on, salted with the run's secret: a driver that does not know it cannot read or say
 * anything, and who learns it later cannot read what was recorded. Of one end of one connection.
 */
public final class Handshake {
  private static final String AGREEMENT = "X25519";
  private static final String HASH = "HmacSHA256";
  private static final int SECRET_BYTES = 32;

  private final byte[] secret;
  private final KeyPair own;

  public Handshake(String secret) {
    this.secret = secret.getBytes(StandardCharsets.UTF_8);
    try {
      own = KeyPairGenerator.getInstance(AGREEMENT).generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw missing(e);
    }
  }

  /** A secret for a run, as hex digits. */
  public static String newSecret() {
    byte[] bytes = new byte[SECRET_BYTES];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  /** The driver's first line. */
  public String challenge() {
    return Base64.getEncoder().encodeToString(own.getPublic().getEncoded());
  }

  /** The task's first line. */
  String answer(String challenge) {
    String key = challenge();
    return key + " " + proof(challenge, key);
  }

  /** The driver's end of the lines to a task that gave {@code answer}; throws if it may not join. */
  LineCipher accept(String answer) throws IOException {
    String[] parts = answer.split(" ", -1);
    byte[] expected = proof(challenge(), parts[0]).getBytes(StandardCharsets.UTF_8);
    byte[] given = parts[parts.length - 1].getBytes(StandardCharsets.UTF_8);
    if (parts.length != 2 || !MessageDigest.isEqual(expected, given)) {
      throw new IOException("did not know the run's secret");
    }
    byte[] root = root(parts[0]);
    return new LineCipher(key(root, "to task"), key(root, "to driver"));
  }

  /** The task's end of the lines to the driver that sent {@code challenge}. */
  LineCipher trust(String challenge) throws IOException {
    byte[] root = root(challenge);
    return new LineCipher(key(root, "to driver"), key(root, "to task"));
  }

  private String proof(String driverKey, String taskKey) {
    return HexFormat.of().formatHex(hash(secret, "cafetiere-task " + driverKey + " " + taskKey));
  }

  /** HKDF's extract step. */
  private byte[] root(String peerKey) throws IOException {
    try {
      byte[] encoded = Base64.getDecoder().decode(peerKey);
      PublicKey peer =
          KeyFactory.getInstance(AGREEMENT).generatePublic(new X509EncodedKeySpec(encoded));
      KeyAgreement agreement = KeyAgreement.getInstance(AGREEMENT);
      agreement.init(own.getPrivate());
      agreement.doPhase(peer, true);
      return hash(secret, agreement.generateSecret());
    } catch (IllegalArgumentException | GeneralSecurityException e) {
      throw new IOException("sent no key of " + AGREEMENT + ": " + e.getMessage(), e);
    }
  }

  /** HKDF's expand step, of which one block is enough. */
  private static byte[] key(byte[] root, String use) {
    return hash(root, "cafetiere " + use + "\u0001");
  }

  private static byte[] hash(byte[] key, String text) {
    return hash(key, text.getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] hash(byte[] key, byte[] text) {
    try {
      Mac mac = Mac.getInstance(HASH);
      mac.init(new SecretKeySpec(key, HASH));
      return mac.doFinal(text);
    } catch (GeneralSecurityException e) {
      throw missing(e);
    }
  }

  private static IllegalStateException missing(GeneralSecurityException e) {
    return new IllegalStateException("every Java 17 has " + AGREEMENT + " and " + HASH, e);
  }
}

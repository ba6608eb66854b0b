// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.util.List;
import java.util.Optional;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Whether what travels between the ranks is encrypted, as the param encrypt says. */
final class Encryption {
  static final List<String> CHOICES = List.of("auto", "on", "off");

  private static final List<String> SPARKS_OWN = List.of(
      "spark.network.crypto.enabled", "spark.ssl.rpc.enabled", "spark.ssl.enabled");

  private static final Logger LOG = LoggerFactory.getLogger(Encryption.class);

  private Encryption() {}

  /** One of {@link #CHOICES} in the session of {@code conf}. */
  static boolean of(String choice, SparkConf conf) {
    warning(choice, conf).ifPresent(LOG::warn);
    if (!choice.equals("auto")) return choice.equals("on");
    return isSparkEncrypted(conf);
  }

  /** What encryption is worth where the keys travel in the clear; empty where they do not. */
  static Optional<String> warning(String choice, SparkConf conf) {
    boolean oneHost = conf.get("spark.master", "").startsWith("local");
    if (!choice.equals("on") || oneHost || isSparkEncrypted(conf)) return Optional.empty();
    return Optional.of("encrypt is on, and Spark sends the secret of the ranks to its executors in the"
        + " clear: who reads all of the network can read what the ranks say. Add --conf"
        + " spark.authenticate=true --conf spark.network.crypto.enabled=true");
  }

  private static boolean isSparkEncrypted(SparkConf conf) {
    return SPARKS_OWN.stream().anyMatch(key -> conf.getBoolean(key, false));
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

/**
 * Says that this Java is too old. What users name, and what the JVM needs to load it, is compiled
 * for Java 8 (see the pom), so that they get a sentence instead of an UnsupportedClassVersionError.
 */
public final class JavaVersion {
  private static final int NEEDED = 17;

  private JavaVersion() {}

  /** Throws on a Java that cannot load the rest of the jar. */
  public static void require() {
    String version = System.getProperty("java.specification.version"); // "1.8", "11", "17"
    if (!version.startsWith("1.") && Integer.parseInt(version) >= NEEDED) return;
    throw new IllegalStateException("Cafetiere needs Java " + NEEDED + " or newer, and this JVM is"
        + " Java " + version + " (" + System.getProperty("java.home") + "): set JAVA_HOME to a"
        + " newer one for the driver, and spark.executorEnv.JAVA_HOME for the executors; every"
        + " Spark that Cafetiere works with runs on Java " + NEEDED);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.util;

/**
 * Says that this Java is too old. What users name, and what the JVM needs to load it, is compiled
 * for Java 8 (see the pom), so that they get a sentence instead of an UnsupportedClassVersionError.
 */
public final class JavaVersion {
  private static final int NEEDED = 17;

  private static final String VERSION = "java.specification.version"; // "1.8", "11", "17"

  private JavaVersion() {}

  /** Whether this Java can load the rest of the jar. */
  public static boolean isNewEnough() {
    String version = System.getProperty(VERSION);
    return !version.startsWith("1.") && Integer.parseInt(version) >= NEEDED;
  }

  /** Throws on a Java that cannot load the rest of the jar. */
  public static void require() {
    if (isNewEnough()) return;
    String version = System.getProperty(VERSION);
    throw new IllegalStateException("Cafetiere needs Java " + NEEDED + " or newer, and this JVM is"
        + " Java " + version + " (" + System.getProperty("java.home") + "): set JAVA_HOME to a"
        + " newer one for the driver, and spark.executorEnv.JAVA_HOME for the executors; every"
        + " Spark that Cafetiere works with runs on Java " + NEEDED);
  }
}

// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A driver in a JVM of its own, with this JVM's classes and settings: for what ends a driver. */
public final class DriverProcess {
  private DriverProcess() {}

  /** Starts {@code main} with its output in {@code log}. */
  public static Process start(Class<?> main, Path log, String... args) throws IOException {
    return start(main, log, Map.of(), args);
  }

  /** The same with more in its environment. */
  public static Process start(Class<?> main, Path log, Map<String, String> environment, String... args)
      throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    for (String option : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
      if (!option.startsWith("-javaagent") && !option.startsWith("-agentlib")) command.add(option);
    }
    // Surefire sets properties after the start, so that they are no arguments.
    for (String name : System.getProperties().stringPropertyNames()) {
      if (name.startsWith("spark.") || name.equals("examples")) {
        command.add("-D" + name + "=" + System.getProperty(name));
      }
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
    command.addAll(List.of(args));
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
    builder.environment().putAll(environment);
    return builder.start();
  }

  /** The text of a file that a driver left, or why there is none, for an assertion's message. */
  public static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }
}

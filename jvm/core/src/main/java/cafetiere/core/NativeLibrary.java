// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * Loads libcafetiere_jni.so, once a class loader. The jar carries it and all libraries it needs
 * beyond libc; they are unpacked into a private folder that is removed as soon as they are loaded.
 * The system property cafetiere.native.path names a folder to load from instead.
 */
public final class NativeLibrary {
  private static final String PLATFORM = "linux-x86_64";
  private static final String LIBRARY = "libcafetiere_jni.so";
  private static final String OVERRIDE = "cafetiere.native.path";

  private static boolean loaded;

  private NativeLibrary() {}

  /** Loads the library unless it is loaded; says what to change if that fails. */
  public static synchronized void load() {
    if (loaded) {
      return;
    }
    String folder = System.getProperty(OVERRIDE);
    if (folder != null) {
      link(new File(folder, LIBRARY).getAbsoluteFile().toPath());
    } else {
      loadFromJar();
    }
    loaded = true;
  }

  private static void loadFromJar() {
    requirePlatform();
    try {
      Path folder = Files.createTempDirectory("cafetiere-native-");
      try {
        unpack(folder);
        link(folder.resolve(LIBRARY));
      } finally {
        remove(folder);
      }
    } catch (IOException e) {
      throw new CafetiereException(
          CafetiereException.Code.IO,
          "cannot unpack the native library: " + e.getMessage() + ": point java.io.tmpdir to a"
              + " folder with space, or unpack it yourself and set -D" + OVERRIDE,
          e);
    }
  }

  private static void requirePlatform() {
    String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    boolean x86 = arch.equals("amd64") || arch.equals("x86_64");
    if (!os.equals("linux") || !x86) {
      throw new CafetiereException(
          CafetiereException.Code.INVALID_ARGUMENT,
          "this jar has native code for " + PLATFORM + " only and this JVM runs on " + os + "-"
              + arch + ": use such a machine, or build the library and set -D" + OVERRIDE);
    }
  }

  private static void unpack(Path folder) throws IOException {
    for (String name : libraries()) {
      try (InputStream in = resource(name)) {
        if (in == null) {
          throw new IOException("the jar lacks " + name + " though its index names it");
        }
        Files.copy(in, folder.resolve(name));
      }
    }
  }

  private static List<String> libraries() throws IOException {
    try (InputStream index = resource("index")) {
      if (index == null) {
        throw new CafetiereException(
            CafetiereException.Code.NOT_FOUND,
            "the jar carries no native library for " + PLATFORM
                + ": build the CMake target native_bundle before the jar, or set -D" + OVERRIDE);
      }
      List<String> names = new ArrayList<>();
      new String(index.readAllBytes(), UTF_8).lines().forEach(names::add);
      return names;
    }
  }

  private static InputStream resource(String name) {
    return NativeLibrary.class.getResourceAsStream("/native/" + PLATFORM + "/" + name);
  }

  private static void link(Path library) {
    try {
      System.load(library.toString());
    } catch (UnsatisfiedLinkError e) {
      throw new CafetiereException(
          CafetiereException.Code.INTERNAL,
          "cannot load " + library + ": " + e.getMessage()
              + ": the machine needs glibc as new as the one it was built with, a CPU with AVX2,"
              + " and a java.io.tmpdir that is not mounted noexec",
          e);
    }
  }

  private static void remove(Path folder) throws IOException {
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    }
  }
}

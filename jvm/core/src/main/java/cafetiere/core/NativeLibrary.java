// SPDX-License-Identifier: Apache-2.0
package cafetiere.core;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Loads libcafetiere.so, once a class loader. The jar carries one for each platform; it is unpacked
 * into a private folder that is removed as soon as the library is loaded. Where a folder is mounted
 * noexec the next is tried: java.io.tmpdir, the folders that YARN or Spark gave the executor, the
 * working folder. The system property cafetiere.native.path names a folder to load from instead.
 */
public final class NativeLibrary {
  private static final String LIBRARY = "libcafetiere.so";
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
    String resource = "/native/" + platform() + "/" + LIBRARY;
    if (NativeLibrary.class.getResource(resource) == null) {
      throw new CafetiereException(
          CafetiereException.Code.NOT_FOUND,
          "this jar has no native code for " + platform() + ", on which this JVM runs: take the"
              + " jar of a release, which has linux-x86_64 and linux-aarch64, or build the library"
              + " and set -D" + OVERRIDE + " to its folder");
    }
    List<String> failures = new ArrayList<>();
    for (Path place : places()) {
      try {
        unpackAndLink(resource, place);
        return;
      } catch (IOException | CafetiereException e) {
        failures.add(e.getMessage());
      }
    }
    throw new CafetiereException(
        CafetiereException.Code.IO,
        "cannot load the native library: " + String.join("; ", failures) + ": set -Djava.io.tmpdir"
            + " to a folder with 20 MB of space that is not mounted noexec, or unpack " + LIBRARY
            + " from the jar yourself and set -D" + OVERRIDE + " to its folder");
  }

  private static String platform() {
    String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
    String arch = System.getProperty("os.arch").toLowerCase(Locale.ROOT);
    return os + "-" + (arch.equals("amd64") ? "x86_64" : arch);
  }

  private static Set<Path> places() {
    Set<Path> places = new LinkedHashSet<>();
    places.add(Path.of(System.getProperty("java.io.tmpdir")));
    for (String variable : new String[] {"LOCAL_DIRS", "SPARK_LOCAL_DIRS"}) {
      String folders = System.getenv(variable);
      if (folders != null) {
        for (String folder : folders.split(",")) {
          places.add(Path.of(folder));
        }
      }
    }
    places.add(Path.of("").toAbsolutePath());
    return places;
  }

  private static void unpackAndLink(String resource, Path place) throws IOException {
    Path folder;
    try {
      folder = Files.createTempDirectory(place, "cafetiere-native-");
    } catch (IOException e) {
      throw new IOException("cannot write to " + place + " (" + e.getMessage() + ")", e);
    }
    Path library = folder.resolve(LIBRARY);
    try (InputStream in = NativeLibrary.class.getResourceAsStream(resource)) {
      Files.copy(in, library);
      link(library);
    } finally {
      Files.deleteIfExists(library);
      Files.delete(folder);
    }
  }

  private static void link(Path library) {
    try {
      System.load(library.toString());
    } catch (UnsatisfiedLinkError e) {
      throw new CafetiereException(CafetiereException.Code.INTERNAL, e.getMessage(), e);
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
import java.io.File;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Trains the same net in class loaders of their own, all at once, each with a jar of its own. */
public final class Loaders {
  /** Entry point: the jars. Prints what each of them trained, a line each. */
  public static void main(String[] jars) throws Exception {
    String tests = System.getProperty("java.class.path");
    List<Callable<String>> trainings = new ArrayList<>();
    for (String jar : jars) {
      // The platform's loader as the parent: nothing of ours is seen by two of them.
      URL[] path = {url(jar), url(tests)};
      ClassLoader loader = new URLClassLoader(path, ClassLoader.getPlatformClassLoader());
      trainings.add(() -> (String) loader.loadClass("OneStep").getMethod("run").invoke(null));
    }
    ExecutorService threads = Executors.newFixedThreadPool(jars.length);
    for (Future<String> training : threads.invokeAll(trainings)) {
      System.out.println(training.get());
    }
    threads.shutdown();
  }

  private static URL url(String path) throws MalformedURLException {
    return new File(path).toURI().toURL();
  }
}

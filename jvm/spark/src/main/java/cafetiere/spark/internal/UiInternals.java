// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.function.IntPredicate;
import org.apache.spark.ui.JettyUtils;
import org.apache.spark.ui.JettyUtils$;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.UIUtils$;
import scala.Function0;
import scala.Option;
import scala.xml.Unparsed;

/**
 * What pages of Spark's UI need and have servlets in its types, of which Spark's lines have different
 * ones: it is found by name.
 */
public final class UiInternals {
  private UiInternals() {}

  /** A request's parameter, which Spark has escaped for HTML; null if it has none. */
  public static String parameter(Object request, String name) {
    try {
      return (String) request.getClass().getMethod("getParameter", String.class)
          .invoke(request, name);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("this Spark's requests have no parameters", e);
    }
  }

  /** Adds a page to a UI. Its handler is a class of Jetty's, whose package Spark 4.2 changed. */
  public static void serve(SparkUI ui, String path, JettyUtils.ServletParams<?> page) {
    Object handler = call(method(JettyUtils$.class, "createServletHandler", count -> count == 4),
        JettyUtils$.MODULE$, path, page, ui.conf(), ui.basePath());
    call(method(SparkUI.class, "attachHandler", count -> count == 1), ui, handler);
  }

  private static Method method(Class<?> of, String name, IntPredicate parameters) {
    return Arrays.stream(of.getMethods())
        .filter(method -> method.getName().equals(name) && !method.isBridge()
            && parameters.test(method.getParameterCount()))
        .findFirst().orElseThrow(() -> new IllegalStateException("this Spark has no " + name));
  }

  private static Object call(Method method, Object on, Object... arguments) {
    try {
      return method.invoke(on, arguments);
    } catch (InvocationTargetException e) {
      throw new IllegalStateException("Spark's " + method.getName() + " fails", e.getCause());
    } catch (IllegalAccessException e) {
      throw new IllegalStateException("Spark's " + method.getName() + " cannot be called", e);
    }
  }

  /** A page of HTML with Spark's header. */
  public static String page(Object request, String title, String html, SparkUITab tab) {
    Function0<Object> content = () -> new Unparsed(html);
    Method header = method(UIUtils$.class, "headerSparkPage", count -> count >= 5);
    Object[] arguments = new Object[header.getParameterCount()];
    Arrays.fill(arguments, false);  // the last ones are switches, of which each line has more
    Object[] first = {request, title, content, tab, Option.empty()};
    System.arraycopy(first, 0, arguments, 0, first.length);
    return "<!DOCTYPE html>" + call(header, UIUtils$.MODULE$, arguments);
  }
}

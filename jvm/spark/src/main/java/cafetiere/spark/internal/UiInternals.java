// SPDX-License-Identifier: Apache-2.0
package cafetiere.spark.internal;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
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
    Object handler = call(method(JettyUtils$.class, "createServletHandler", 4),
        JettyUtils$.MODULE$, path, page, ui.conf(), ui.basePath());
    call(method(SparkUI.class, "attachHandler", 1), ui, handler);
  }

  private static Method method(Class<?> of, String name, int parameters) {
    return Arrays.stream(of.getMethods())
        .filter(method -> method.getName().equals(name) && !method.isBridge()
            && method.getParameterCount() == parameters)
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
    return "<!DOCTYPE html>" + call(method(UIUtils$.class, "headerSparkPage", 7),
        UIUtils$.MODULE$, request, title, content, tab, Option.empty(), false, false);
  }
}

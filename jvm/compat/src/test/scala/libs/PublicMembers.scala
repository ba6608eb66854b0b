// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.reflect.runtime.universe

/** What is public in Scala, and the files of the tests' resources that list it. */
object PublicMembers {
  /** The lines of a list. */
  def listed(name: String): Seq[String] = {
    val list = Paths.get(sys.props("root"), "jvm/compat/src/test/resources", name)
    new String(Files.readAllBytes(list), UTF_8).linesIterator
      .filterNot(line => line.isEmpty || line.startsWith("#")).toSeq
  }

  /** The members of the classes and objects that are directly in a package, with their whole signatures. */
  def of(name: String): Seq[String] = {
    val folder = placeOf(classOf[NDArray]).resolve(name.replace('.', '/'))
    val simple = filesIn(folder).filter(_.getParent == folder).map(_.getFileName.toString.stripSuffix(".class"))
    simple.filterNot(_.stripSuffix("$").contains("$")).flatMap(file => members(s"$name.$file"))
  }

  private def members(of: String): Seq[String] = {
    val mirror = universe.runtimeMirror(getClass.getClassLoader)
    val name = of.stripSuffix("$")
    val symbol =
      if (of == name) mirror.staticClass(name)
      else mirror.staticModule(name).moduleClass
    if (!symbol.isPublic || symbol.privateWithin != universe.NoSymbol) Nil
    else
      symbol.typeSignature.decls.toSeq
        .filter(member => isSeen(member) && member.isMethod && !member.isSynthetic)
        .filterNot(member => member.isConstructor && of != name)
        .filterNot(_.name.toString == "$init$") // of a trait, the compiler's
        .map(member => signature(name, member.asMethod))
  }

  /** Scala's own, but of a type whose annotations are within each other, which Scala cannot load: Java's. */
  private def signature(name: String, method: universe.MethodSymbol): String =
    try {
      val types = method.typeParams.map(_.name).mkString("[", ", ", "]").replace("[]", "")
      val parameters = method.paramLists.map(
        _.map(p => s"${p.name}: ${p.typeSignature}").mkString("(", ", ", ")"))
      s"$name.${method.name.decodedName}$types${parameters.mkString}: ${method.returnType}"
    } catch {
      case e: Throwable if e.getMessage.contains("InterfaceAudience") =>
        Class.forName(name).getMethods.filter(_.getName == method.name.encodedName.toString)
          .map(java => s"$name.${java.getName}: ${java.getGenericReturnType}").mkString("\n")
    }

  private def isSeen(member: universe.Symbol): Boolean =
    (member.isPublic || member.isProtected) && member.privateWithin == universe.NoSymbol

  def placeOf(found: Class[_]): Path =
    Paths.get(found.getProtectionDomain.getCodeSource.getLocation.toURI)

  def filesIn(folder: Path): Seq[Path] = {
    val walk = Files.walk(folder)
    try walk.filter(_.toString.endsWith(".class")).toArray.toSeq.map(_.asInstanceOf[Path])
    finally walk.close()
  }
}

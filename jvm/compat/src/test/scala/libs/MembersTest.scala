// SPDX-License-Identifier: Apache-2.0
package libs

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}

import scala.reflect.runtime.universe

import org.junit.jupiter.api.Assertions._
import org.junit.jupiter.api.Test

/** What users' programs call is what public-members.txt lists, on both lines of Scala. */
class MembersTest {
  private val root = Paths.get(sys.props("root"))
  private val packages = Seq("apps", "libs", "libs/v1", "loaders", "preprocessing")

  @Test def publicMembersAreThoseOfTheList(): Unit = {
    val list = root.resolve("jvm/compat/src/test/resources/public-members.txt")
    val expected = new String(Files.readAllBytes(list), UTF_8).linesIterator
      .filterNot(line => line.isEmpty || line.startsWith("#")).toSeq
    val found = names().flatMap(members).distinct.sorted
    assertEquals(expected.mkString("\n"), found.mkString("\n"))
  }

  /** Whatever protobuf lies on the class path, ours is another one. */
  @Test def nothingNamesProtobufsOwnPackage(): Unit = {
    val files = Seq(classOf[NDArray], classOf[caffe.Caffe]).map(placeOf).distinct.flatMap(filesIn)
    assertTrue(files.exists(_.endsWith("caffe/Caffe.class")))
    assertTrue(files.exists(_.endsWith("cafetiere/protobuf/TextFormat.class")))
    val naming = files.filter(file =>
      new String(Files.readAllBytes(file), "ISO-8859-1").contains("com/google/protobuf/"))
    assertEquals(Nil, naming.toList)
  }

  /** The classes and objects of the packages. */
  private def names(): Seq[String] = {
    val place = placeOf(classOf[NDArray])
    for {
      name <- packages
      file <- filesIn(place.resolve(name)) if file.getParent == place.resolve(name)
      simple = file.getFileName.toString.stripSuffix(".class")
      if !simple.stripSuffix("$").contains("$")
    } yield s"${name.replace('/', '.')}.$simple"
  }

  /** What is public in Scala, with its whole signature. */
  private def members(of: String): Seq[String] = {
    val mirror = universe.runtimeMirror(getClass.getClassLoader)
    val name = of.stripSuffix("$")
    val symbol =
      if (of == name) mirror.staticClass(name)
      else mirror.staticModule(name).moduleClass
    if (!symbol.isPublic) Nil
    else
      symbol.typeSignature.decls.toSeq
        .filter(member => member.isPublic && member.isMethod && !member.isSynthetic)
        .filterNot(member => member.isConstructor && of != name)
        .filterNot(_.name.toString == "$init$") // of a trait, the compiler's
        .map { member =>
          val method = member.asMethod
          val parameters = method.paramLists.map(
            _.map(p => s"${p.name}: ${p.typeSignature}").mkString("(", ", ", ")"))
          s"$name.${member.name}${parameters.mkString}: ${method.returnType}"
        }
  }

  private def placeOf(found: Class[_]): Path =
    Paths.get(found.getProtectionDomain.getCodeSource.getLocation.toURI)

  private def filesIn(folder: Path): Seq[Path] = {
    val walk = Files.walk(folder)
    try walk.filter(_.toString.endsWith(".class")).toArray.toSeq.map(_.asInstanceOf[Path])
    finally walk.close()
  }
}

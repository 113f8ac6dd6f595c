//! Enums whose variants have names in options and results.

/// Defines an enum whose variants have names. `ALL` has all variants in their order, and `name`
/// returns the name of one.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $type:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)*
        }
    ) => {
        $(#[$meta])*
        $visibility enum $type {
            $($(#[$of_variant])* $variant,)*
        }

        #[doc(hidden)]
        impl $type {
            /// All variants.
            $visibility const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Returns the name.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

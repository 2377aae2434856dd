//! Macros for the types of this package.

/// An enum without data. Each variant has one name, in JSON and in `as_str`.
macro_rules! names {
    ($(#[$about:meta])* pub enum $kind:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $kind {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)*
        }

        impl $kind {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

/// `Debug` that shows only the listed fields. The other fields may contain secrets.
macro_rules! redacted {
    ($($kind:ident { $($shown:ident),* }),*) => {$(
        impl std::fmt::Debug for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($kind))$(.field(stringify!($shown), &self.$shown))*.finish_non_exhaustive()
            }
        }
    )*};
}
